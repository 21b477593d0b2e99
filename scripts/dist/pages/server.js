const http = require('http');
const crypto = require('crypto');
const s = http.createServer((q, r) => {
  const from = q.socket.remoteAddress, xff = q.headers['x-forwarded-for'];
  console.log(q.method, q.url, 'peer', from, 'xff', xff, 'host', q.headers.host, 'proto', q.headers['x-forwarded-proto'], 'fwd', q.headers.forwarded);
  if (q.url.startsWith('/slow')) return setTimeout(() => r.end('slow\n'), 1000 * Number(q.url.slice(6)));
  if (q.url.startsWith('/dir') && !q.url.endsWith('/')) { r.writeHead(302, {location: `http://${q.headers.host}/dir/`}); return r.end(); }
  if (q.method === 'POST') { let n = 0; q.on('data', d => n += d.length); return q.on('end', () => r.end(`got ${n}\n`)); }
  r.end('hello\n');
});
s.on('upgrade', (q, sock) => {
  const key = crypto.createHash('sha1').update(q.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64');
  sock.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ' + key + '\r\n\r\n');
  sock.write(Buffer.from([0x81, 2, 104, 105]));
});
s.listen(Number(process.env.PORT || 3000), '127.0.0.1');
