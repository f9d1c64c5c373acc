# Tests with unittest, mock and doctest, run by their own runner.
import doctest
import io
import os
import unittest
from unittest import mock


def double(n):
    """
    >>> double(2)
    4
    """
    return n * 2


class T(unittest.TestCase):
    def test_double(self):
        self.assertEqual(double(3), 6)

    def test_mock(self):
        with mock.patch("os.getcwd", return_value="/mocked"):
            self.assertEqual(os.getcwd(), "/mocked")

    @unittest.skip("later")
    def test_later(self):
        pass

    def test_files(self):
        for name in "ab":
            with self.subTest(name=name):
                with open(name, "w") as f:
                    f.write(name)
                self.assertTrue(os.path.exists(name))


result = unittest.TextTestRunner(stream=io.StringIO()).run(unittest.defaultTestLoader.loadTestsFromTestCase(T))
print(result.testsRun, len(result.skipped), result.wasSuccessful(), doctest.testmod().attempted)
