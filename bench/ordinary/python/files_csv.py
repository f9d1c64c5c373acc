# Write a CSV file, read it, sum it by group.
import csv
from collections import defaultdict

rows = [("north", "pears", 12.5), ("south", "apples", 7), ("north", "apples", 3.25), ("south", "quinces, ripe", 1)]
with open("sales.csv", "w", newline="") as f:
    writer = csv.writer(f)
    writer.writerow(["region", "fruit", "amount"])
    writer.writerows(rows)
totals = defaultdict(float)
with open("sales.csv", newline="") as f:
    for row in csv.DictReader(f):
        totals[row["region"]] += float(row["amount"])
for region, amount in sorted(totals.items()):
    print(f"{region}: {amount:.2f}")
