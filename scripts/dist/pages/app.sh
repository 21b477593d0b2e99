# An application at 127.0.0.1:$PORT (3000).
install -D -m 0644 /root/pages/server.js /srv/app/server.js
printf '[Service]\nEnvironment=PORT=%s\nExecStart=/usr/bin/node /srv/app/server.js\n' "${PORT:-3000}" >/etc/systemd/system/app.service
systemctl daemon-reload
systemctl start app
