data {
  train = tsv("sales.tsv")
  x     : f32 = colum("a")
  label : class[3]
}
model {
  y = linear(x, 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
