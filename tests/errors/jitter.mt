data {
  train = idx("images", "labels")
  image : u8[1, 8, 8]
  label : class[10]
}
model {
  same   = color_jitter(image)
  grey   = color_jitter(image, saturation = 0.4)
  strong = color_jitter(image, 1.5)
  late   = color_jitter(conv2d(image, 3, 3), 0.4)
  scores = linear(flatten(same + grey), 10)
}
train {
  loss      = cross_entropy(scores, label)
  optimizer = adam(1e-3)
}
