. /root/pages/app.sh
printf '<VirtualHost *:80>\nServerName shop.example\nProxyPass / http://127.0.0.1:3000/\nProxyPreserveHost On\n</VirtualHost>\n' \
  >/etc/apache2/sites-available/shop.conf
a2enmod --quiet proxy_http
a2ensite --quiet shop
a2dissite --quiet 000-default
systemctl start apache2
