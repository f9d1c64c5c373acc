# A queue at a counter, simulated with numpy, and a plot of it.
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

rng = np.random.default_rng(3)
arrivals = np.cumsum(rng.exponential(1.0, 500))
service = rng.exponential(0.8, 500)
end = 0.0
waits = []
for a, s in zip(arrivals, service):
    begin = max(a, end)
    waits.append(begin - a)
    end = begin + s
print(round(float(np.mean(waits)), 3), np.histogram(waits, bins=4)[0].sum())
plt.hist(waits, bins=20)
plt.savefig("waits.png", dpi=50)
print(open("waits.png", "rb").read(4))
