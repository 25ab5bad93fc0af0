param share = 20  # percent of the examples that test
data {
  examples   = tsv("sales.tsv", columns = ["order", "date", "_", "category", "quantity", "price", "total"])
  split      = (100 - share) / share
  validation = csv("more.csv", separator = ";")
  numbers    : f32[2] = columns("quantity", "price", missing = -share / 20)
  category   : class[16] = column("category", missing = "other", unseen = "other")
  day        : f32[1] = day_of_year("date", missing = "mean", format = "%d.%m.%Y")
  week       : class[7] = weekday("date", missing = "skip")
  total      : f32
}
model {
  x = concat([numbers, day / 366, one_hot(category, 16), one_hot(week, 7)], axis = 0)
  y = linear(x, 1)
}
train {
  loss      = mse(y, reshape(total, [1]))
  optimizer = sgd(0.1)
}
