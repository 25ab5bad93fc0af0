data {
  train = tsv("sales.tsv", columns = ["price", "quantity", "label"])
  x     : f32[2] = columns("price", "quantty")
  label : class[3]
}
model {
  y = linear(x, 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
