data {
  train = tsv("sales.tsv")
  x     : f32
  label : class[3] = column("label", unseen = "othr")
}
model {
  y = linear(x, 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
