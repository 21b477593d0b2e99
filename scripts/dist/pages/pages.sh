# Pages in PHP in /srv/shop, and a certificate where certbot would put it.
mkdir -p /srv/shop/dir /etc/letsencrypt/live/shop.example
cat >/srv/shop/index.php <<'PHP'
<?php foreach (["REMOTE_ADDR", "HTTPS", "SERVER_PORT", "HTTP_HOST"] as $name) echo $name, "=", $_SERVER[$name] ?? "-", "\n";
PHP
echo folder >/srv/shop/dir/index.html
cd /etc/letsencrypt/live/shop.example
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=shop.example \
  -addext subjectAltName=DNS:shop.example -keyout privkey.pem -out fullchain.pem 2>/dev/null
