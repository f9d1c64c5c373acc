# From a table to a report in Markdown and HTML.
import pandas as pd

frame = pd.DataFrame({"team": ["a", "b", "a", "c"], "points": [3, 1, 2, 5], "when": pd.to_datetime(["2024-01-0%d" % d for d in (1, 2, 3, 4)])})
best = frame.groupby("team", as_index=False)["points"].sum().sort_values("points", ascending=False)
lines = ["| team | points |", "|---|---|"] + [f"| {r.team} | {r.points} |" for r in best.itertuples()]
with open("report.md", "w") as f:
    f.write("\n".join(lines))
best.to_html("report.html", index=False)
print(open("report.md").read(), open("report.html").read().count("<tr"))
print(frame.describe()["points"].round(2).to_dict(), frame.query("points > 2")["team"].tolist())
