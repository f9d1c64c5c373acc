# pandas: read, group, pivot, join, write.
import pandas as pd

with open("s.csv", "w") as f:
    f.write("day,city,sales\n2024-01-01,Oslo,5\n2024-01-01,Rome,7\n2024-01-02,Oslo,6\n2024-01-02,Rome,\n")
df = pd.read_csv("s.csv", parse_dates=["day"])
print(df.groupby("city")["sales"].agg(["sum", "mean", "count"]))
print(df.pivot(index="day", columns="city", values="sales").ffill())
print(df.merge(pd.DataFrame({"city": ["Oslo", "Rome"], "land": ["NO", "IT"]}), on="city")["land"].tolist())
df.to_json("s.json", orient="records", date_format="iso")
print(pd.read_json("s.json").shape, df.set_index("day").resample("D")["sales"].sum().tolist())
