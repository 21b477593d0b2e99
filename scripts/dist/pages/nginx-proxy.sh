. /root/pages/app.sh
cat >/etc/nginx/sites-available/shop <<'SITE'
server {
    listen 80;
    server_name shop.example;
    location / { proxy_pass http://127.0.0.1:3000; proxy_set_header Host $host; }
}
SITE
ln -sf ../sites-available/shop /etc/nginx/sites-enabled/shop
systemctl start nginx
