# An application, nginx, and a certificate authority for tests that certbot asks.
PORT=8080 . /root/pages/app.sh
systemctl start nginx
mkdir -p /root/authority /etc/letsencrypt
cd /root/authority
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=localhost \
  -addext subjectAltName=DNS:localhost -keyout key.pem -out certificate.pem 2>/dev/null
cp certificate.pem /usr/local/share/ca-certificates/authority.crt
update-ca-certificates >/dev/null 2>&1
cat >config.json <<'JSON'
{"pebble": {"listenAddress": "127.0.0.1:14000", "managementListenAddress": "127.0.0.1:15000", "certificate": "certificate.pem",
  "privateKey": "key.pem", "httpPort": 80, "tlsPort": 443, "ocspResponderURL": "", "externalAccountBindingRequired": false}}
JSON
PEBBLE_VA_NOSLEEP=1 PEBBLE_WFE_NONCEREJECT=0 setsid pebble -config config.json >log 2>&1 </dev/null &
echo 'server = https://localhost:14000/dir' >/etc/letsencrypt/cli.ini
sleep 1
