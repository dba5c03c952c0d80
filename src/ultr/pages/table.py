"""Rows of text under a title: on a page, on the screen, in Markdown and in LaTeX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Row = Mapping[str, str]
LONG = 20
"""Letters from which on a text may be broken into lines."""


@dataclass(frozen=True)
class Table:
    """Rows of text; the columns are the keys of the first row, and those of numbers stand to the right."""

    title: str
    rows: Sequence[Row]
    folded: bool = False
    """Shown only when it is opened."""
    bold: Mapping[str, str] = field(default_factory=dict)
    """By column, the first cell of the row to print in bold."""

    @classmethod
    def of_cells(
        cls,
        title: str,
        corner: str,
        cells: Mapping[str, Sequence[str]],
        columns: Sequence[str],
        *,
        folded: bool = False,
    ) -> Table:
        """A row for each name of `cells`, under `corner`, with a cell for each of the columns.

        >>> Table.of_cells("rates", "grade", {"0": [".1", ".2"]}, ["first", "second"]).rows
        [{'grade': '0', 'first': '.1', 'second': '.2'}]
        """
        rows = [{corner: name} | dict(zip(columns, texts, strict=True)) for name, texts in cells.items()]
        return cls(title, rows, folded)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.rows[0]) if self.rows else []

    def is_numeric(self, column: str) -> bool:
        """True if a column holds numbers."""
        return all(row[column][:1] in tuple("0123456789.+-") or not row[column] for row in self.rows)

    def kinds(self) -> dict[str, str]:
        """The style of each column: `number`, `long` for texts that must not become one word wide, or `word`."""
        longest = {
            column: max(len(line) for row in self.rows for line in row[column].split("\n")) for column in self.columns
        }
        return {
            column: "number" if self.is_numeric(column) else "long" if length > LONG else "word"
            for column, length in longest.items()
        }

    def as_markdown(self) -> str:
        """The rows in Markdown.

        >>> print(Table("", [{"ranker": "Click", "nDCG@10": ".718"}]).as_markdown(), end="")
        | ranker | nDCG@10 |
        | --- | --- |
        | Click | .718 |
        """
        lines = [self.columns, ["---"] * len(self.columns), *(row.values() for row in self.rows)]
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)

    def as_latex(self) -> str:
        r"""The table for the LaTeX package booktabs, with its title as the caption.

        >>> print(Table("Real clicks", [{"ranker": "Click", "gap closed": "0%"}]).as_latex(), end="")
        \begin{table}
          \caption{Real clicks}
          \begin{tabular}{lr}
            \toprule
            ranker & gap closed \\
            \midrule
            Click & 0\% \\
            \bottomrule
          \end{tabular}
        \end{table}
        """
        body = []
        for row in self.rows:
            cells = [
                rf"\textbf{{{_escaped(cell)}}}" if self.bold.get(column) == next(iter(row.values())) else _escaped(cell)
                for column, cell in row.items()
            ]
            body.append(f"    {' & '.join(cells)} \\\\\n")
        return (
            f"\\begin{{table}}\n  \\caption{{{_escaped(self.title)}}}\n"
            f"  \\begin{{tabular}}{{l{'r' * (len(self.columns) - 1)}}}\n"
            f"    \\toprule\n    {' & '.join(map(_escaped, self.columns))} \\\\\n    \\midrule\n"
            f"{''.join(body)}    \\bottomrule\n  \\end{{tabular}}\n\\end{{table}}\n"
        )


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(mark, mark) for mark in text)


_LATEX = {
    **{mark: f"\\{mark}" for mark in "&%_#${}"},
    **{mark: f"${mark}$" for mark in "<>"},
    "\\": r"\textbackslash{}",
    "^": r"\^{}",
    "~": r"\~{}",
    "±": r"$\pm$",
    "°": r"$^\circ$",
}
