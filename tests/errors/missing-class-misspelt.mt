data {
  train = tsv("sales.tsv")
  x     : class[12] = month("a", missing = "men")
  label : class[3]
}
model {
  y = linear(one_hot(x, 12), 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
