. /root/pages/pages.sh
cat >/etc/apache2/sites-available/shop.conf <<'SITE'
<VirtualHost *:80>
    ServerName shop.example
    DocumentRoot /srv/shop
    <Directory /srv/shop>
        Require all granted
    </Directory>
    CustomLog ${APACHE_LOG_DIR}/access.log combined
</VirtualHost>
SITE
a2ensite --quiet shop
a2dissite --quiet 000-default
systemctl start apache2
