from __future__ import annotations

from steelyard.report.page import Column, Table, Value
from steelyard.report.tables import to_latex, to_markdown

TABLE = Table(
    "outside_error",
    "Table 1. 5 % of x_y",
    (Column("workload"), Column("err", "s", is_number=True)),
    ((Value("exp/exp_float | <b>"), Value("0.1", 0.1, note="NA & co")), (Value("{x}"), Value("NA"))),
    "note_1",
)


def test_markdown_escapes_and_aligns() -> None:
    assert to_markdown(TABLE) == (
        "**Table 1. 5 % of x\\_y**\n\n"
        "| workload | err \\[s\\] |\n"
        "| :--- | ---: |\n"
        "| exp/exp\\_float \\| \\<b\\> | 0.1 (NA & co) |\n"
        "| \\{x\\} | NA |\n\n"
        "note\\_1\n"
    )


def test_latex_escapes_and_aligns() -> None:
    assert to_latex(TABLE) == (
        "\\begin{table}\n\\caption{Table 1. 5 \\% of x\\_y}\n\\label{outside-error}\n"
        "\\begin{tabular}{lr}\n\\toprule\nworkload & err [s] \\\\\n\\midrule\n"
        "exp/exp\\_float | \\textless{}b\\textgreater{} & 0.1 \\\\\n\\{x\\} & NA \\\\\n"
        "\\bottomrule\n\\end{tabular}\n\\end{table}\n"
    )
