data {
  examples = tsv("sales.tsv")
  split    = [80, 20]
  x     : f32[2] = columns("a", "b")
  label : class[3]
}
model {
  y = linear(x, 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
