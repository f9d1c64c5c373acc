# Event, condition, timer, data of one thread.
import threading

ready, own, turn, log = threading.Event(), threading.local(), threading.Condition(), []
threading.Timer(0.05, ready.set).start()
print(ready.wait(10))


def player(name, me):
    own.name = name
    for round in range(3):
        with turn:
            turn.wait_for(lambda: len(log) % 2 == me, 10)
            log.append(own.name)
            turn.notify_all()


players = [threading.Thread(target=player, args=(n, i)) for i, n in enumerate(("ping", "pong"))]
for p in players:
    p.start()
for p in players:
    p.join()
print(log, hasattr(own, "name"))
