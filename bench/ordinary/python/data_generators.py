# Generators, decorators, context managers, closures.
import contextlib
import functools
import io
import itertools
import operator


def fibonacci():
    a, b = 0, 1
    while True:
        yield a
        a, b = b, a + b


def logged(f):
    @functools.wraps(f)
    def wrapper(*args):
        print("call", f.__name__, args)
        return f(*args)
    return wrapper


@logged
def add(a, b):
    return a + b


print(list(itertools.islice(fibonacci(), 12)), add(1, 2), functools.reduce(operator.mul, range(1, 6)))
with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(ZeroDivisionError):
    print("hidden")
    1 / 0
print(out.getvalue().strip(), list(zip(*[iter(range(6))] * 2)), sorted("Hello", key=str.lower))
