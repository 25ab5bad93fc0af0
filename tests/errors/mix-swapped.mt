data {
  train = idx("images", "labels")
  image : u8[3, 8, 8]
  label : class[10]
}
model {
  a, b, s = mixup(label, image)
  scores  = linear(flatten(image), 10)
}
train {
  loss      = cross_entropy(scores, label)
  optimizer = adam(1e-3)
}
