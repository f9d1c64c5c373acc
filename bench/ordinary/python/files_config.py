# An INI file and a TOML file.
import configparser
import tomllib

ini = configparser.ConfigParser()
ini["server"] = {"host": "localhost", "port": "8080"}
ini["paths"] = {"root": "/srv", "logs": "%(root)s/log"}
with open("app.ini", "w") as f:
    ini.write(f)
read = configparser.ConfigParser()
read.read("app.ini")
print(read.getint("server", "port"), read["paths"]["logs"])
with open("app.toml", "w") as f:
    f.write('title = "x"\n[owner]\nborn = 1979-05-27\nports = [8000, 8001]\n')
with open("app.toml", "rb") as f:
    print(tomllib.load(f))
