. /root/pages/app.sh
cat >/etc/haproxy/haproxy.cfg <<'PROXY'
defaults
  mode http
  timeout connect 2s
  timeout client 60s
  timeout server 60s
frontend clients
  bind 192.0.2.7:80
  option forwardfor
  http-request set-header X-Forwarded-Proto %[ssl_fc,iif(https,http)]
  http-request del-header Forwarded
  default_backend gateways
backend gateways
  source 10.0.0.10
  server one 10.0.0.20:80
PROXY
