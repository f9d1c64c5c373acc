# numpy: arrays, linear algebra, random numbers, files.
import numpy as np

a = np.arange(12).reshape(3, 4)
print(a.T @ a, a.mean(axis=0), (a % 2 == 0).sum())
print(np.round(np.linalg.solve([[3, 1], [1, 2]], [9, 8]), 6))
rng = np.random.default_rng(42)
print(np.round(rng.normal(size=3), 4))
np.save("a.npy", a)
assert (np.load("a.npy", mmap_mode="r") == a).all()
big = np.random.default_rng(0).random((200, 200))
print(np.allclose(big @ np.linalg.inv(big), np.eye(200)))
