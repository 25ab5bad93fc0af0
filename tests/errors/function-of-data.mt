data {
  train = tsv("sales.tsv")
  x     : f32[2] = columns("a", "b")
  label : class[3]
}
model {
  day = month("date")
  y   = linear(x + day, 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
