# Clocks, sleeping, time zones.
import datetime
import os
import time
from zoneinfo import ZoneInfo

before = time.monotonic()
time.sleep(0.05)
assert 0.04 < time.monotonic() - before < 5
assert time.perf_counter_ns() > 0 and time.process_time() > 0
moment = datetime.datetime(2024, 7, 1, 12, 0, tzinfo=ZoneInfo("Europe/Berlin"))
print(moment.isoformat(), moment.astimezone(ZoneInfo("America/New_York")).isoformat())
print(moment.timestamp(), (moment - datetime.timedelta(days=183)).tzname())
os.environ["TZ"] = "Asia/Tokyo"
time.tzset()
print(time.strftime("%H:%M %Z", time.localtime(0)))
print(abs(time.time() - datetime.datetime.now(datetime.timezone.utc).timestamp()) < 5)
