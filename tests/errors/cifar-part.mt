data {
  train = cifar10("cifar-10-batches-bin", "tests")
  image : u8[3, 32, 32]
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
