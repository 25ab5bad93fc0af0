data {
  train = tsv("sales.tsv")
  x     : f32
  label : class[3] = weekday("date")
}
model {
  y = linear(x, 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
