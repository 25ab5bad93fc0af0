data {
  train = idx("images", "labels")
  image : u8[4, 4]
  label : class[3]
}
model {
  h      = relu(linear(flatten(image), 5))
  logits = linear(h, 3)
}
train {
  loss      = cross_entropy(logits, label)
  metric    = accuracy(logits, label)
  optimizer = sgd(0.1)
  freeze    = ["h.*", "logit.*", "*.scale", "!logits.bia"]
}
