. /root/pages/pages.sh
systemctl start php8.2-fpm
cat >/etc/nginx/sites-available/shop <<'SITE'
server {
    listen 443 ssl http2;
    server_name shop.example;
    ssl_certificate     /etc/letsencrypt/live/shop.example/fullchain.pem;
    ssl_certificate_key /etc/letsencrypt/live/shop.example/privkey.pem;
    root /srv/shop;
    index index.php index.html;
    location / { try_files $uri $uri/ /index.php?$args; }
    location ~ \.php$ { include snippets/fastcgi-php.conf; fastcgi_pass unix:/run/php/php8.2-fpm.sock; }
}
SITE
ln -sf ../sites-available/shop /etc/nginx/sites-enabled/shop
systemctl start nginx
