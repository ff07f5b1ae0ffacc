-- Transform records: clean strings, nested values as columns, one row per item, one partition per shop.

CREATE STREAM baskets (shop STRING, customer JSON, items ARRAY<STRING>) WITH (queue = 'baskets');

INSERT INTO baskets VALUES
  (' Berlin ', '{"name": "Anna", "vip": true}', SPLIT('tea:4.50,cup:9', ',')),
  ('PARIS', '{"name": "Bert"}', SPLIT('pot:20', ','));

CREATE STREAM basket_items AS
SELECT LOWER(TRIM(shop)) AS shop, customer.name AS customer, EXPLODE(items) AS item
FROM baskets;

CREATE STREAM sold_items AS
SELECT shop, customer, SPLIT(item, ':')[0] AS article, CAST(SPLIT(item, ':')[1] AS DECIMAL(10, 2)) AS price
FROM basket_items
WITH (partition_by = 'shop');

-- rows of sold_items
-- {"shop": "berlin", "customer": "Anna", "article": "tea", "price": 4.50}
-- {"shop": "berlin", "customer": "Anna", "article": "cup", "price": 9.00}
-- {"shop": "paris", "customer": "Bert", "article": "pot", "price": 20.00}
