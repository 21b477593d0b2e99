<?php
// A list of a small shop: products are made up, filtered, sorted and rendered.
mt_srand(7);
$products = [];
for ($number = 0; $number < 16000; $number++) {
    $products[] = ['name' => 'Product ' . md5((string) $number), 'price' => mt_rand(100, 99999) / 100, 'stock' => mt_rand(0, 9)];
}
$offered = array_filter($products, fn ($product) => $product['stock'] > 0 && preg_match('/7[a-f]/', $product['name']));
usort($offered, fn ($one, $other) => $one['price'] <=> $other['price']);
$rows = array_map(
    fn ($product) => sprintf('<tr><td>%s</td><td>%.2f</td></tr>', htmlspecialchars($product['name']), $product['price']),
    array_slice($offered, 0, 100)
);
$page = '<table>' . implode("\n", $rows) . '</table>';
// One byte for each page that is done, also for clients that have left.
file_put_contents($marks, '.', FILE_APPEND);
echo $page;
