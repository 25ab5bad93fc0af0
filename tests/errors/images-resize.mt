data {
  train = images("photos", resize = 64)
  image : u8[3, 64, 64]
  label : class[10]
}
model {
  logits = linear(flatten(image) / 255, 10)
}
train {
  loss      = cross_entropy(logits, label)
  optimizer = sgd(0.1)
  batch     = 8
  epochs    = 1
}
