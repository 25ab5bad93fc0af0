data {
  train = idx("a", "b")
  image : u8[28, 28]
  label : class[10]
}
model {
  logits = linear(image / 255, 10)
}
train {
  loss = cross_entropy(logits, label)
  optimizer = sgd(0.1)
}
