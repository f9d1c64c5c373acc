# Exact and statistical numbers.
import random
import statistics
from decimal import Decimal, getcontext
from fractions import Fraction

data = [2.5, 3.5, 1.0, 4.0, 10.0]
print(statistics.mean(data), statistics.median(data), round(statistics.stdev(data), 4), statistics.quantiles(data, n=4))
getcontext().prec = 30
print(Decimal(1) / Decimal(7), Fraction(1, 3) + Fraction(1, 6), 2 ** 200 % 1000007)
random.seed(1)
print(random.randint(1, 100), random.sample(range(20), 4), round(random.gauss(0, 1), 6))
