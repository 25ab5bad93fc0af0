data {
  train = idx("images", "labels")
  image : u8[4, 4]
  label : class[3]
}
model {
  h      = relu(layer_norm(linear(flatten(image), 5)))
  logits = linear(h, 3)
}
train {
  loss      = cross_entropy(logits, label)
  optimizer = []
}
