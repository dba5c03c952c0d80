const get = (id) => document.getElementById(id);
function make(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}
const headers = () => (get("bearer").value ? { Authorization: `Bearer ${get("bearer").value}` } : {});

async function ask(path) {
  let response;
  try { response = await fetch(path, { headers: headers() }); } catch { get("about").textContent = "The service does not answer."; return null; }
  get("token").hidden = response.status !== 401;
  if (response.status === 401) {
    get("about").textContent = "";
    get("refused").textContent = get("bearer").value ? "This is not the token." : "";
    return null;
  }
  return response.json();
}
