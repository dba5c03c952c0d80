# The ranking service alone: what it needs and no more, so neither torch nor a compiler, and not as root.
FROM python:3.11-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /build
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m venv /opt/ultr
RUN /opt/ultr/bin/pip install --constraint constraints.txt '.[serve]'

FROM python:3.11-slim
COPY --from=build /opt/ultr /opt/ultr
# Its root file system may be read-only: nothing is written, not even bytecode.
ENV PATH=/opt/ultr/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 10001:10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=15s \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/health', timeout=2)"]
# The model and the token are mounted, so that one image serves every model.
CMD ["ultr", "serve", "/model/model.onnx", "--host", "0.0.0.0", "--token-file", "/run/secrets/token"]
