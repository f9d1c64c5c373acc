# Logging to a rotating file, with handlers, levels and a traceback.
import logging
import logging.config
import logging.handlers
import os

log = logging.getLogger("app")
log.setLevel(logging.DEBUG)
handler = logging.handlers.RotatingFileHandler("app.log", maxBytes=200, backupCount=2)
handler.setFormatter(logging.Formatter("%(levelname)s %(name)s %(message)s"))
log.addHandler(handler)
for i in range(20):
    log.info("message %02d", i)
try:
    1 / 0
except ZeroDivisionError:
    log.exception("it failed")
handler.close()
print(sorted(n for n in os.listdir(".") if n.startswith("app.log")))
print(open("app.log").read().strip().splitlines()[-1])
