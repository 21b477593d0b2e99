// The upstream API of api.php: waits 800 ms and uses no processor.
'use strict';
const http = require('node:http');
const [port] = process.argv.slice(2);
http.createServer((request, response) => {
  setTimeout(() => response.end('{"price":"9.90"}'), 800);
}).listen(Number(port), '127.0.0.1', 2048);
