# The total of a sale, from what a row of the sales table says. tools/make_sales.py writes such a table.
#
#     mtc models/sales.mt -o sales                       # quantity, price, category and day of the year
#     mtc models/sales.mt -o sales --set features=2      # quantity and price only
param features = 4 in 2..4  # 2: quantity and unit price; 3: and the category; 4: and the day of the year
param hidden   = 32         # neurons of the hidden layer
param lr       = 1e-3 in 0..1

data {
  examples = tsv("sales.tsv", columns = ["product", "code", "date", "timestamp", "quantity", "unit_price", "category",
      "user", "total_price", "id"])
  split    = 80 / 20  # at random; 80 / 20 in order: the first ones train, the last are the test
  numbers  : f32[2] = columns("quantity", "unit_price")
  category : class[16]
  day      : f32[1] = day_of_year("date")
  total    : f32[1] = column("total_price")
}

model {
  x = normalize(numbers)
  if features == 3 {
    x = concat([x, one_hot(category, 16)], axis = 0)
  }
  if features == 4 {
    x = concat([x, one_hot(category, 16), normalize(day)], axis = 0)
  }
  h        = relu(linear(x, hidden))
  y        = linear(h, 1)
  price    = denormalize(y, total)
  baseline = mae(denormalize(0, total), total)  # of a prediction that is always the mean
}

train {
  loss      = mse(y, normalize(total))
  metric    = [mae(price, total), baseline]
  predict   = price
  optimizer = adam(lr)
  batch     = 256
  epochs    = 50
}
