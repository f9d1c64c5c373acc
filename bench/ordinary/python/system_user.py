# Who am I.
import getpass
import grp
import os
import pathlib
import pwd

entry = pwd.getpwuid(os.getuid())
assert entry.pw_name and pwd.getpwnam(entry.pw_name).pw_uid == os.getuid()
assert grp.getgrgid(os.getgid()).gr_name
assert getpass.getuser()
home = pathlib.Path.home()
(home / ".config/tool").mkdir(parents=True, exist_ok=True)
(home / ".config/tool/settings").write_text("colour = blue\n")
print((home / ".config/tool/settings").read_text().strip())
print(os.path.expanduser("~/x") == str(home / "x"), os.geteuid() == os.getuid())
