# Dates: parsing, arithmetic, calendars.
import calendar
from datetime import date, datetime, timedelta, timezone

d = datetime.strptime("2024-02-28 23:30", "%Y-%m-%d %H:%M").replace(tzinfo=timezone.utc)
print(d + timedelta(hours=1), d.strftime("%A %d %B %Y"), d.isocalendar()[1])
print((date(2024, 12, 25) - date(2024, 1, 1)).days, calendar.isleap(2024), calendar.monthrange(2023, 2))
print(calendar.month(2024, 2))
print(datetime.fromisoformat("2024-01-01T00:00:00+02:00").astimezone(timezone.utc), datetime.fromtimestamp(0, timezone.utc))
