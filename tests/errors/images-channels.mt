data {
  train = images("photos", resize = true)
  image : u8[4, 64, 64]
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
