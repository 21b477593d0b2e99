<?php
// A page that asks another service for a price. The lines before this give `$api` and `$marks`.
$price = json_decode(file_get_contents($api), true)['price'];
// One byte for each page that is done, also for clients that have left.
file_put_contents($marks, '.', FILE_APPEND);
echo '<p>' . htmlspecialchars($price) . '</p>';
