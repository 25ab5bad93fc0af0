data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
