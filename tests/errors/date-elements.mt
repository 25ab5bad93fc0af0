data {
  train = tsv("sales.tsv")
  x     : f32[2] = weekday("date")
  label : class[3]
}
model {
  y = linear(x, 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
