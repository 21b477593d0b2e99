. /root/pages/apache-pages.sh
files='SSLEngine on\nSSLCertificateFile /etc/letsencrypt/live/shop.example/fullchain.pem\nSSLCertificateKeyFile /etc/letsencrypt/live/shop.example/privkey.pem'
sed -i "s|\*:80>|*:443>\n$files|" /etc/apache2/sites-available/shop.conf
a2enmod --quiet ssl
systemctl restart apache2
