mkdir -p /var/www/html/dir
echo folder >/var/www/html/dir/index.html
systemctl start nginx
