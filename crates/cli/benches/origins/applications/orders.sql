-- The orders of a small shop, the same every time.
create table orders as
  select number as id, number * 7919 % 400 as customer, number * 104729 % 10000 as cents, 'Product ' || md5(number::text) as product
  from generate_series(1, 100000::bigint) as number;
analyze orders;
