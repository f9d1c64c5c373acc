# A plot to PNG and SVG files.
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

figure, (left, right) = plt.subplots(1, 2, figsize=(6, 3))
left.plot([1, 2, 3], [1, 4, 9], label="squares")
left.set_title("Größe")
left.legend()
right.bar(["a", "b"], [3, 5])
figure.savefig("plot.png")
figure.savefig("plot.svg")
print(open("plot.png", "rb").read(8), "<svg" in open("plot.svg").read())
