#!/bin/bash
# localhost, host names, ports.
getent hosts 127.0.0.1 | awk '{print $2}'; getent ahosts localhost | grep -c STREAM | grep -q '[12]' && echo resolved
getent services https | awk '{print $2}'; [ -n "$(hostname)" ] && [ "$(hostname)" = "$(uname -n)" ] && echo named
(exec 3<>/dev/tcp/127.0.0.1/1) 2>/dev/null || echo refused; cat /etc/hosts | grep -c localhost | grep -q '[1-9]' && echo hosts
