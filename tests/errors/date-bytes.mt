data {
  train = tsv("sales.tsv")
  x     : u8 = day_of_year("date")
  label : class[3]
}
model {
  y = linear(x, 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
